// A call that carries bef.nonstrict runs what does not need the late argument first.
func.func @second(%late: i32, %x: i32) -> i32 {
  %c0 = tfrt.new.chain
  %c1 = tfrt.print.i32 %x, %c0
  tfrt.return %late : i32
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 2
// CHECK-NEXT: int32 = 1
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %two = tfrt.constant.i32 2
  %one = "tfrt_test.async_constant.i32"() {value = 1 : i32} : () -> i32
  %x = tfrt.call @second(%one, %two) {bef.nonstrict} : (i32, i32) -> (i32)
  %c1 = tfrt.print.i32 %x, %c0
  tfrt.return %c1 : !tfrt.chain
}
