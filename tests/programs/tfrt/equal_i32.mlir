// CHECK-LABEL: --- Running 'equal':
// CHECK-NEXT: 'equal' returned 1,0
func.func @equal() -> (i1, i1) {
  %a = tfrt.constant.i32 4
  %b = tfrt.constant.i32 5
  %same = tfrt.equal.i32 %a, %a
  %other = tfrt.equal.i32 %a, %b
  tfrt.return %same, %other : i1, i1
}
