// Dimensions of 32 bits and a rank of 10.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: shape = [4294967295, 2]
// CHECK-NEXT: shape = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = ts.build_shape [4294967295 : i64, 2 : i64]
  %b = ts.build_shape [1 : i64, 2 : i64, 3 : i64, 4 : i64, 5 : i64, 6 : i64, 7 : i64, 8 : i64, 9 : i64, 10 : i64]
  %c1 = ts.print_shape %a, %c0
  %c2 = ts.print_shape %b, %c1
  tfrt.return %c2 : !tfrt.chain
}
