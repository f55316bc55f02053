"""heatmap.py draws a PNG from good input and refuses bad input with one line and exit code 2."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).with_name("heatmap.py")


class Heatmap(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.picture = self.folder / "picture"

    def draw(self, weights, tokens):
        np.save(self.folder / "weights.npy", weights)
        (self.folder / "tokens.json").write_text(tokens)
        command = [sys.executable, SCRIPT, "--weights", self.folder / "weights.npy"]
        command += ["--tokens", self.folder / "tokens.json", "--out", self.picture]
        return subprocess.run(command, capture_output=True, text=True)

    def refuse(self, weights, tokens, words):
        done = self.draw(weights, tokens)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertFalse(self.picture.exists())

    def test_draws_every_head(self):
        done = self.draw(np.full((5, 3, 3), 1 / 3, np.float32), json.dumps({"tokens": ["a", "b", "c"], "layer": 2}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_refuses_bad_input(self):
        good = np.zeros((2, 3, 3), np.float32)
        self.refuse(good[0], '["a", "b", "c"]', "(3, 3)")
        self.refuse(good[:0], '["a", "b", "c"]', "(0, 3, 3)")
        self.refuse(good.astype(np.int32), '["a", "b", "c"]', "int32")
        self.refuse(good, '["a", "b"]', "2 tokens")
        self.refuse(good, '{"tokens": 3}', "tokens.json")
        self.refuse(good, '["a", ', "tokens.json")


if __name__ == "__main__":
    unittest.main()
