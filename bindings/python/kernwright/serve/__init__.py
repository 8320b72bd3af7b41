"""An OpenAI-compatible server of language models: `kernwright serve MODEL`.

Its packages (`pip install 'kernwright[serve]'`) are imported by its modules, never by
`import kernwright`.
"""
