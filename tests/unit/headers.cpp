// Holds the precompiled headers that all unit tests share.
