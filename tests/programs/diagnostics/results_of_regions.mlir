// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f(%c: i1, %x: i32) -> i32 {
  %y = tfrt.if %c, %x : (i32) -> (i32) {
    %z = tfrt.constant.i64 1
    tfrt.return %z : i64 // expected-error {{'tfrt.return' op operand types don't match 'tfrt.if' result}}
  } else {
    tfrt.return %x : i32
  }
  tfrt.return %y : i32
}
