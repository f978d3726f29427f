"""What is shown in a browser: replays in a file of their own, and tables at which people and agents play.

The pages are in `static/`. Everything that reaches a browser is made from public states and events: what is hidden
(§10) is not sent.
"""
