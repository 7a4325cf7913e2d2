"""The update engine: compilation, CUDA graphs, memory and precision; no formula of an algorithm."""
