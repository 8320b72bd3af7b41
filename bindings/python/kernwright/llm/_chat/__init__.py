"""Messages to texts: templates of files, and those of well-known formats."""
