// RUN: tfrt_opt -split-input-file -verify-diagnostics

func.func @use() {
  "tfrt_test.fail"(%x) : (i32) -> () // expected-error {{use of undeclared SSA value name}}
  "tfrt.return"() : () -> ()
}
// -----
func.func @twice() {
  %x = "tfrt_test.fail"() : () -> i32
  // expected-error @+1 {{redefinition of SSA value}}
  %x = "tfrt_test.fail"() : () -> i32
  "tfrt.return"() : () -> ()
}
// -----
func.func @types() {
  // expected-error @+1 {{expected 0 operand types but had 1}}
  "tfrt_test.fail"() : (i32) -> i32
  "tfrt.return"() : () -> ()
}
// -----
func.func @range() {
  // expected-error @+1 {{integer constant out of range for attribute}}
  %x = "tfrt.constant.i32"() {value = 5000000000 : i32} : () -> i32
  "tfrt.return"() : () -> ()
}
// -----
func.func @results() {
  // expected-error @+1 {{operation defines 1 results but was provided 2 to bind}}
  %x:2 = "tfrt_test.fail"() : () -> i32
  "tfrt.return"() : () -> ()
}
