// CHECK-LABEL: --- Running 'constant':
// CHECK-NEXT: 'constant' returned -7
func.func @constant() -> i32 {
  %x = tfrt.constant.i32 -7
  tfrt.return %x : i32
}
