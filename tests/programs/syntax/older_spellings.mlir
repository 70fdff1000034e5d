// The published design's older spellings: func, and a body in the generic form.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 3
func @main() -> i32 {
  %x = "tfrt.constant.i32"() {value = 3 : i32} : () -> i32
  "tfrt.return"(%x) : (i32) -> ()
}
