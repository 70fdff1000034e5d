// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: shape = [1, 57, 92]
// CHECK-NEXT: shape = []
// CHECK-NEXT: int64 = 5244
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = ts.build_shape [1 : i64, 57 : i64, 92 : i64]
  %b = ts.build_shape []
  %c1 = ts.print_shape %a, %c0
  %c2 = ts.print_shape %b, %c1
  %n = ts.get_num_elements %a
  %c3 = tfrt.print.i64 %n, %c2
  tfrt.return %c3 : !tfrt.chain
}
