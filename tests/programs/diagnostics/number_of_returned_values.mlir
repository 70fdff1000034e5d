// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> (i32, i32) {
  %x = tfrt.constant.i32 1
  tfrt.return %x : i32 // expected-error {{'tfrt.return' op has 1 operands, but enclosing function returns 2}}
}
