"""How a page reaches the console: its address, token and certificate, and what is refused before anything is served."""
