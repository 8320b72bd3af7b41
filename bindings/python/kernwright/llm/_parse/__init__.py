"""Texts of models to messages: reasoning, tool calls and content, whole or in pieces."""
