# A picture, saved beside you: airlock run examples/plot.py
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 4 * np.pi, 400)
figure, axes = plt.subplots(figsize=(8, 4))
axes.plot(x, np.sin(x), label="sin x")
axes.plot(x, np.sin(x) * np.exp(-x / 6), label="damped")
axes.set_title("made in a sandbox without a network")
axes.grid(True)
axes.legend()
print("the mean of sin² is", round(float(np.mean(np.sin(x) ** 2)), 3))
