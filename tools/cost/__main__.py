from tools.cost.command import cost

cost(prog_name="make cost")
