class GemvEpilogueWithScalingFactor
{
  CUTLASS_DEVICE void operator()(ElementAccumulator frag_acc, ElementC frag_c, int batch_idx)
  {
      #if defined(FP4PATCH_E2M1_INSTRUCTION)
        uint32_t temp_result;
        // the asm statement: left as it is
      #else
        ElementD output_fp4_0 = NumericConverter<ElementD, ElementCompute>{}(acc_0 * qpvscale_up_rcp);
        ElementD output_fp4_1 = NumericConverter<ElementD, ElementCompute>{}(acc_1 * qpvscale_up_rcp);
        uint8_t raw_fp4_0 = reinterpret_cast<const uint8_t&>(output_fp4_0) & 0x0F;
        uint8_t raw_fp4_1 = reinterpret_cast<const uint8_t&>(output_fp4_1) & 0x0F;
        qval_u8_compare = (raw_fp4_1 << 4) | raw_fp4_0;
      #endif
  }
};
