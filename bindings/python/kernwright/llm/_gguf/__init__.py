"""Models as GGUF files: names of arrays, metadata, vocabularies."""
