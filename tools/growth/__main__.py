from tools.growth.command import growth

growth(prog_name="make growth")
