// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> i32 {
  %x = "tfrt.constant.i32"() : () -> i32 // expected-error {{'tfrt.constant.i32' op requires attribute 'value'}}
  tfrt.return %x : i32
}
