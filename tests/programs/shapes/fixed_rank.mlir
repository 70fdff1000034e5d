// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: fixed_rank_shape = [1, 57, 92]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = ts.build_shape [1 : i64, 57 : i64, 92 : i64]
  %b = ts.as_fixed_rank_shape.3 %a
  %c1 = ts.print_fixed_rank_shape.3 %b, %c0
  tfrt.return %c1 : !tfrt.chain
}
