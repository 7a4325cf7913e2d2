"""A real llama.cpp server in a process of its own: `python llama_server.py FOLDER [blind]` prints its URL and serves.

It ends when its standard input does. `blind` leaves out what makes tokens of pictures.
"""

import sys
from pathlib import Path

import xllamacpp
from tiny_gguf import write_language_model, write_projector


def main():
    folder, blind = Path(sys.argv[1]), "blind" in sys.argv[2:]
    settings = xllamacpp.CommonParams()
    settings.model.path = str(write_language_model(folder / "tiny.gguf"))
    if not blind:
        settings.mmproj.path = str(write_projector(folder / "tiny-mmproj.gguf"))
    settings.model_alias = {"tiny"}
    settings.n_ctx, settings.n_parallel, settings.cpuparams.n_threads = 8192, 1, 1
    server = xllamacpp.Server(settings)
    print(server.listening_address + "/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
