"""Model files in other number formats: quantisation, importance matrices, conversion."""
