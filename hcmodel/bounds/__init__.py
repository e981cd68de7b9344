"""How certificates bound the minimum from below: slopes in hidden coordinates, and sets that hold U."""
