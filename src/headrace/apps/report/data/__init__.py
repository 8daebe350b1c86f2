"""What the stages hand on: pydantic values, JSON on the way."""
