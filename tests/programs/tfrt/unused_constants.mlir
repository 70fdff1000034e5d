// Constants that only texts and binaries have: no kernel computes with them.
// CHECK-LABEL: --- Running 'unsigned':
// CHECK-NEXT: 'unsigned' returned
func.func @unsigned() -> ui32 {
  %x = tfrt.constant.ui32 4294967295
  tfrt.return %x : ui32
}
