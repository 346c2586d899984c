"""How questions are answered in small space: each class owns arrays and one promise."""
