# A table of a CSV: airlock run --with examples/sales.csv examples/sales.py
import pandas as pd

sales = pd.read_csv("sales.csv")
sales["revenue"] = sales["units"] * sales["price"]
print(f"{len(sales)} rows, revenue {sales['revenue'].sum():.2f}")

sales.pivot_table(index="month", columns="region", values="revenue", aggfunc="sum")
