# 0.33: an exact test that chooses a table of tuned sizes stays
def _is_sm120() -> bool:
    return current_platform.get_device_capability() == (12, 0)
