"""Resources as vectors, amounts as text, shapes, and the demand for them."""
