// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: partial_tensor_shape = [1, -1, 92]
// CHECK-NEXT: partial_tensor_shape = Unknown rank
// CHECK-NEXT: partial_tensor_shape = [3, 4]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = ts.build_partial_shape [1 : i64, -1 : i64, 92 : i64]
  %b = ts.build_unranked_partial_shape
  %s = ts.build_shape [3 : i64, 4 : i64]
  %c = ts.to_partial_shape %s
  %c1 = ts.print_partial_shape %a, %c0
  %c2 = ts.print_partial_shape %b, %c1
  %c3 = ts.print_partial_shape %c, %c2
  tfrt.return %c3 : !tfrt.chain
}
