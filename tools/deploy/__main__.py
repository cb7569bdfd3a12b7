from tools.deploy.command import deploy

deploy(prog_name="make deploy")
