// An encoder of images in front of a decoder.
#include "core/forward_builder.h"
#include "core/kernel_params.h"

namespace akunu {

ArchDescriptor tower_of(const ImageEncoder& images) {
  ArchDescriptor tower;
  tower.embeds = true;
  tower.causal = false;
  tower.norm = NormKind::layer;
  tower.dim = images.is.dim;
  tower.norm_epsilon = images.is.norm_epsilon;
  tower.context_length = images.n_patches();
  tower.layers = images.layers;
  return tower;
}

Forward ForwardBuilder::encode_image(const ImageEncoder& images, uint32_t text_dim) {
  const uint32_t dim = arch_.dim, k = images.patch_numbers();
  use_own_values("image ", images.n_patches());
  begin_encoder_part();
  const std::string patch = "encoder.patch_embedding";
  const ActivationKind kind = kind_for(patch + ".weight", dim, k);
  ValueId input = bound("patches", memory_.patches);
  if (kind != ActivationKind::f32) {
    const ValueId pixels = input;
    input = activation("patches", kind, k);
    emit(Operation::activate, "patch activation", {pixels, input},
         ActivateParams{k, kActivationNone, 0, 0});
  }
  residual_ = rows("residual", dim);
  matmul("patch embedding", input, patch + ".weight", dim, k, residual_);
  bias_if_present("patch embedding bias", residual_, patch + ".bias", dim);
  if (!images.is.rotates)
    emit(Operation::add_embedding, "patch position",
         {residual_, weight("encoder.position_embedding.weight", images.n_patches(), dim)},
         AddEmbeddingParams{dim, images.n_patches(), kIndexPosition, 0});
  angles();
  for (uint32_t i = 0; i < arch_.layers.size(); ++i) encoder_layer(i, arch_.layers[i], "image");
  const ValueId encoded = rows("encoded", dim);
  norm("image norm", residual_, "encoder.output_norm", encoded);

  emit_to(forward_.project_image);
  if (images.is.merger == PatchMerger::average)
    project_means(encoded, text_dim);
  else
    project_squares(encoded, images, text_dim);
  return std::move(forward_);
}

// A head row for each token, which stands at the last of its patches.
void ForwardBuilder::project_means(ValueId encoded, uint32_t text_dim) {
  const uint32_t dim = arch_.dim;
  const std::string projection = "encoder.projection.weight";
  const ValueId pooled = rows("pooled", dim, Extent::head_rows);
  // Head rows are computed as generated rows are, in every class.
  const ValueId normed = activation(
      "pooled normed", kind_for(projection, text_dim, dim, RowClass::few), dim, Extent::head_rows);
  forward_.image_vectors = rows("vectors", text_dim, Extent::head_rows);
  emit(Operation::pool, "image pool", {encoded, pooled}, PoolParams{dim, {}});
  emit(Operation::rms_norm, "image projection norm",
       {pooled, vector("encoder.projection_norm.weight", dim), normed},
       NormParams{dim, arch_.norm_epsilon, {}}, Extent::head_rows);
  matmul("image projection", normed, projection, text_dim, dim, forward_.image_vectors,
         Extent::head_rows);
}

// A row for each token. Its patches lie side by side, so they are one long row.
void ForwardBuilder::project_squares(ValueId encoded, const ImageEncoder& images,
                                     uint32_t text_dim) {
  use_own_values(owner(), images.n_tokens());
  const std::string projection = "encoder.projection";
  const uint32_t k = images.patches_per_token() * arch_.dim;
  const bool has_two = images.is.projector_activation != Activation::none;
  const std::string first = has_two ? "encoder.projection_up" : projection;
  const uint32_t n = has_two ? k : text_dim;
  const ValueId squares = activation("squares", kind_for(first + ".weight", n, k), k);
  emit(Operation::activate, "image squares", {encoded, squares},
       ActivateParams{k, kActivationNone, 0, 0});
  const ValueId made = rows("projected", n);
  matmul("image projection", squares, first + ".weight", n, k, made);
  bias_if_present("image projection bias", made, first + ".bias", n);
  ValueId projected = made;
  if (has_two) {
    const ValueId hidden =
        activation("projection hidden", kind_for(projection + ".weight", text_dim, n), n);
    emit(Operation::activate, "image projection activation", {made, hidden},
         ActivateParams{n, number_of(images.is.projector_activation), 0, 0});
    projected = rows("projected twice", text_dim);
    matmul("image second projection", hidden, projection + ".weight", text_dim, n, projected);
    bias_if_present("image second projection bias", projected, projection + ".bias", text_dim);
  }
  forward_.image_vectors = rows("vectors", text_dim, Extent::head_rows);
  emit(Operation::gather_head, "image vectors", {projected, forward_.image_vectors},
       GatherParams{text_dim, {}});
}

}  // namespace akunu
