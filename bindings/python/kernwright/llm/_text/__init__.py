"""Text to token ids and back: vocabularies of all file formats, streams of text, stop strings."""
