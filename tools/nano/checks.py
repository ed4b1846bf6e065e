"""What --smoke compares with transformers: the forward pass, and the preparation of pictures and sound."""
import traceback

import numpy as np

from clock import say


def check_forward(trainer):
    """Our way of calling the parts against the model's own forward."""
    torch = trainer.torch
    size = (432, 336)
    was = trainer.model.training
    trainer.model.eval()
    ids, _, _, specs = trainer.pictures[size]
    picture, _ = trainer.renderer.draw(specs[:2], (320, 240))
    values, positions = trainer.renderer.patches(trainer.renderer.resize(picture, size))
    with torch.no_grad():
        ours = trainer.nano.logits(trainer.nano.hidden(ids[:2].long(), trainer.nano.see(values, positions).flatten(0, 1)))
        theirs = trainer.model(input_ids=ids[:2].long(), pixel_values=values, image_position_ids=positions, use_cache=False).logits
        say("picture: forward differs by", (ours - theirs).abs().max().item(), "of", theirs.abs().max().item())
        if hasattr(trainer, "speech"):
            i, _, features, mask, _ = trainer.speech_batch(2)
            soft, real = trainer.nano.hear(features, mask)
            ours = trainer.nano.logits(trainer.nano.hidden(i.long(), audio=soft[real]))
            theirs = trainer.model(input_ids=i.long(), input_features=features, input_features_mask=mask, use_cache=False).logits
            say("speech: forward differs by", (ours - theirs).abs().max().item(), "of", theirs.abs().max().item())
    trainer.model.train(was)


def check_processors(trainer):
    """Our preparation of pictures and sound against transformers' own."""
    torch = trainer.torch
    specs = trainer.pictures[(432, 336)][3][:1]
    picture, _ = trainer.renderer.draw(specs, (320, 240))
    values, positions = trainer.renderer.patches(trainer.renderer.resize(picture, (432, 336)))
    try:
        from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil
        from PIL import Image
        processor = Gemma4ImageProcessorPil(max_soft_tokens=70)
        made = processor(images=[Image.fromarray(picture[0].cpu().numpy().astype(np.uint8))], return_tensors="pt")
        theirs = made["pixel_values"][0][: values.shape[1]]
        say("picture: patches differ by at most", ((values[0].cpu() - theirs).abs().max() * 255).item(), "levels, mean",
            ((values[0].cpu() - theirs).abs().mean() * 255).item(), "positions equal", bool((made["image_position_ids"][0][: values.shape[1]] == positions[0].cpu()).all()))
    except Exception:
        traceback.print_exc()
    from transformers.models.gemma4.feature_extraction_gemma4 import Gemma4AudioFeatureExtractor
    samples = (np.sin(np.arange(20345) * 0.05) * 0.3 + np.random.RandomState(0).randn(20345) * 0.01).astype(np.float32)
    made = Gemma4AudioFeatureExtractor()([samples], return_tensors="np")
    features, mask = trainer.features(torch.tensor(samples, device=trainer.device)[None], torch.tensor([len(samples)], device=trainer.device))
    theirs, valid = made["input_features"][0], made["input_features_mask"][0]
    count = int(mask.sum())
    say("sound: frames", count, int(valid.sum()), "differ by", float(np.abs(features[0, :count].cpu().numpy() - theirs[:count]).max()))
