// CHECK-LABEL: --- Running 'main':
// CHECK: constructed vt.value(1)
// CHECK: move constructed vt.value(1)
// CHECK: print vt_value(3)
// CHECK: destroyed vt.value(3)
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %one = "vt.constant"() {value = 1 : i32} : () -> !vt.value
  %two = "vt.constant"() {value = 2 : i32} : () -> !vt.value
  %sum = "vt.add"(%one, %two) : (!vt.value, !vt.value) -> !vt.value
  %c1 = "vt.print"(%sum, %c0) : (!vt.value, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
