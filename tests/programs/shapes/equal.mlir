// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 1,0
func.func @main() -> (i1, i1) {
  %a = ts.build_shape [1 : i64, 57 : i64]
  %b = ts.build_shape [1 : i64, 57 : i64]
  %c = ts.build_shape [57 : i64, 1 : i64]
  %same = ts.equal_shape %a, %b
  %other = ts.equal_shape %a, %c
  tfrt.return %same, %other : i1, i1
}
