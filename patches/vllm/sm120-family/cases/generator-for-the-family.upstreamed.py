# 0.25.1 and later
SUPPORT_FP8 = False
for arch in sys.argv[1].split(","):
    if arch == 89 or arch // 10 == 12:
        SUPPORT_FP8 = True
