"""A tiny CLIP learns the names of emoji from nothing, scored every 20 steps: curve.csv with all numbers, curve.png.

It is trained on a fifth of the emoji; the scores ask whether it tells the skin tones and genders of all of them.
Trainers take `monitor.transformers()`, `monitor.lightning()` or `monitor.sentence_transformers()` instead of the loop.
"""

import io

import numpy as np
import torch
from PIL import Image
from transformers import CLIPConfig, CLIPModel

import embark
from embark.items import emoji


def pixels(images):
    arrays = [np.asarray(image.convert("RGB").resize((32, 32)), np.float32) for image in images]
    return torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2) / 127.5 - 1


def tokens(texts):  # the last bytes, an end, padding
    return torch.tensor([[*text.encode()[-31:], 257, *[256] * 31][:32] for text in texts])


def encoder(clip):
    text = lambda texts: clip.get_text_features(tokens(texts)).pooler_output  # noqa: E731
    image = lambda images: clip.get_image_features(pixels(images)).pooler_output  # noqa: E731
    return embark.encoder(text=text, image=image, revision="live")


torch.manual_seed(0)
size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
text = size | {"vocab_size": 258, "max_position_embeddings": 32, "bos_token_id": 0, "eos_token_id": 257}
picture = size | {"image_size": 32, "patch_size": 8}
model = CLIPModel(CLIPConfig(text_config=text, vision_config=picture, projection_dim=64))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
seen = [symbol for symbol in emoji.table().values() if emoji.held_out(symbol.base, "en")]
names = tokens([symbol.name for symbol in seen])
images = pixels([Image.open(io.BytesIO(symbol.art)) for symbol in seen])
monitor = embark.Monitor(["PocketSkinTonePairs", "PocketGenderPairs"], every=20, encoder=encoder, loggers=["curve.csv"])
for step in range(201):
    monitor.step(model, step)  # scores step 0, 20, 40…, and leaves the model as it was
    rows = torch.randperm(len(seen))[:64]
    loss = model(names[rows], images[rows], return_loss=True).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
monitor.curve().plot("curve.png")
print(monitor.measurements[-1])
