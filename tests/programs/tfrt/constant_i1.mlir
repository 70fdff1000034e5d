// CHECK-LABEL: --- Running 'truth':
// CHECK-NEXT: 'truth' returned 1,0
func.func @truth() -> (i1, i1) {
  %yes = tfrt.constant.i1 true
  %no = tfrt.constant.i1 false
  tfrt.return %yes, %no : i1, i1
}
