"""The module that document "A2A <-> LangGraph Mapping" names. The functions are those of dragoman.langgraph."""
from dragoman.langgraph import emit_data, emit_file, emit_message, emit_task_metadata

__all__ = ["emit_data", "emit_file", "emit_message", "emit_task_metadata"]
