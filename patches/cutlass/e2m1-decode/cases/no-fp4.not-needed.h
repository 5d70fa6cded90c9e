struct float_e4m3_t : public float8_base<FloatEncoding::E4M3> {
};
