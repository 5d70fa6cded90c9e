# 0.12 to 0.20
SUPPORT_FP8 = False
for arch in sys.argv[1].split(","):
    arch = arch[: arch.index(".") + 2].replace(".", "")
    arch = int(arch)
    # only SM89 and SM120 fully support FP8
    if arch in [89, 120, 121]:
        SUPPORT_FP8 = True
