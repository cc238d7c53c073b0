"""What a check that looks at many things counts and prints."""
import time


class Check:
    """Counts what holds, and prints what does not, with the name of the check before it."""

    def __init__(self, name, limit=20.0):
        self.name, self.limit, self.passed, self.failed = name, limit, 0, 0

    def __call__(self, what, got, wanted):
        if got == wanted:
            self.passed += 1
        else:
            self.failed += 1
            print("FAIL  %s: %s: expected %r, got %r" % (self.name, what, wanted, got), flush=True)

    def until(self, what, ask, wanted):
        """Whether `ask` comes to say `wanted`."""
        deadline = time.monotonic() + self.limit
        while (found := ask()) != wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        self(what, found, wanted)

    def end(self):
        """The last line, and the exit code."""
        print("%d passed, %d failed" % (self.passed, self.failed))
        return 1 if self.failed or not self.passed else 0
