// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> i64 {
  %x = tfrt.constant.i32 1
  // expected-error @+1 {{type of return operand 0 ('i32') doesn't match function result type ('i64')}}
  tfrt.return %x : i32
}
