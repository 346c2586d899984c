"""What the packing kernels write, as kernels/bitpack.py describes it."""


class Bits:
    """One large integer, written from its lowest bit on."""

    def __init__(self):
        self.value = self.length = 0

    def put(self, value, width):
        assert value < 1 << width
        self.value |= value << self.length
        self.length += width

    def put_blocks(self, numbers):
        for begin in range(0, len(numbers), 8):
            block = numbers[begin : begin + 8]
            width = max(block).bit_length()
            self.put(width, 6)
            for number in block:
                self.put(number, width)

    def written(self):
        return self.value.to_bytes((self.length + 7) // 8, "little")
