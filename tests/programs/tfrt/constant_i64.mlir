// CHECK-LABEL: --- Running 'constant':
// CHECK-NEXT: 'constant' returned 4294967296
func.func @constant() -> i64 {
  %x = tfrt.constant.i64 4294967296
  tfrt.return %x : i64
}
