// The service worker of the page without a server: once it was loaded, it works without a network.

const NAME = "montecristo-{{version}}";
const FILES = {{files}};

self.addEventListener("install", (event) => {
  const fill = async () => (await caches.open(NAME)).addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
  event.waitUntil(fill().then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const sweep = async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith("montecristo-") && name !== NAME);
    await Promise.all(old.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(sweep());
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const answer = async () => (await (await caches.open(NAME)).match(event.request, { ignoreSearch: true })) ?? fetch(event.request);
  event.respondWith(answer());
});
