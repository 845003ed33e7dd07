#include "espalier/base/vec_math.h"

namespace espalier {

float exp_of(float x) { return exp(VecN<1>::broadcast(x)).lane[0]; }

float sigmoid_of(float x) { return sigmoid(VecN<1>::broadcast(x)).lane[0]; }

}  // namespace espalier
