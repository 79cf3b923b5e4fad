"""Records what SentencePiece (Debian's python3-sentencepiece) makes of texts.json with the models of
this folder: /usr/bin/python3 record_sentencepiece.py > sentencepiece_cases.json

The models were made by spm_train from generated stories: --model_type=bpe --vocab_size=560
--byte_fallback=true --normalization_rule_name=identity --remove_extra_whitespaces=false
--allow_whitespace_only_pieces=true; llama_like with --split_digits=true, gemma_like with
--add_dummy_prefix=false --user_defined_symbols="<sep>,▁▁,▁▁▁▁,the▁c".
"""
import json
from pathlib import Path

import sentencepiece

here = Path(__file__).parent
texts = json.loads((here / "texts.json").read_text())
cases = []
for name in ("llama_like.model", "gemma_like.model"):
    model = sentencepiece.SentencePieceProcessor(model_file=str(here / name))
    cases.append({"file": name, "ids": [model.encode(text) for text in texts]})
print("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]")
