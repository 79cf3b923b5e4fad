# %% [markdown]
# # Canon positions, drawn
# Run `forge run --table positions` first, or take the shipped values as below.

# %%
import json
import sys
from pathlib import Path

here = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
sys.path.append(str(here.parents[1] / "app" / "python"))
sys.path.append("/usr/local/share/forge/python")
import forge  # noqa: E402

# %% The table: of your runs if there are any, else the shipped one.
try:
    table = forge.table("positions", folder=here)
    if not any(row["runs"] for row in table.rows):
        raise forge.ForgeError("none of the table's runs is completed")
except forge.ForgeError as problem:
    print(f"shipped values, because forge says: {problem}")
    shipped = json.loads((here / "RESULTS.json").read_text())
    table = forge.Table(next(content for content in shipped if content["table"] == "positions"))

# %% Every seed as a point, the mean with its 95 % interval beside it.
rows = [row for row in table.rows if row["runs"]]
for row in rows:
    loss = row["statistics"]["eval_loss"]
    print(f"{row['name']:14} {loss['mean']:.4f}  {loss['low']:.4f} to {loss['high']:.4f}  {loss['standing']}")

# %%
try:
    from matplotlib import pyplot
except ImportError:
    sys.exit("matplotlib is not installed: the numbers are above")

figure, axes = pyplot.subplots(figsize=(8, 4))
for place, row in enumerate(rows):
    values, loss = [run["eval_loss"] for run in row["runs"]], row["statistics"]["eval_loss"]
    axes.plot([place] * len(values), values, "o", color="tab:blue", alpha=0.5)
    axes.errorbar(place + 0.2, loss["mean"], yerr=[[loss["mean"] - loss["low"]], [loss["high"] - loss["mean"]]],
                  fmt="s", color="black", capsize=3)
axes.set_xticks(range(len(rows)), [row["name"] for row in rows], rotation=30, ha="right")
axes.set_ylabel("eval loss, nats a token")
axes.set_title(table.title)
figure.tight_layout()
figure.savefig("positions.png", dpi=150)
print("wrote positions.png")
