// The replay is made for a wide window: in a page it is shown smaller.
const WIDTH = 1280;
for (const frame of document.querySelectorAll(".replay-frame")) {
  const fit = () => frame.style.setProperty("--scale", frame.clientWidth / WIDTH);
  new ResizeObserver(fit).observe(frame);
  fit();
}
