func.func @shout(%x: i32) {
  %c0 = tfrt.new.chain
  %c1 = tfrt.print.i32 %x, %c0
  tfrt.return
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 5
func.func @main() {
  %five = tfrt.constant.i32 5
  tfrt.call @shout(%five) : (i32) -> ()
  tfrt.return
}
